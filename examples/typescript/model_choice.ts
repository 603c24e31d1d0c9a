// Which of two models answers: asks a budgetbandits service until the money is spent, and reports what each answer
// cost and was worth. The types in api.ts are generated from the service itself:
//
//     npm ci && npm run generate && npm run check && npm start
//
// with the service's address in BUDGETBANDITS_URL and an admin key in BUDGETBANDITS_KEY.

import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Decision = components["schemas"]["DecisionAnswer"];

const { BUDGETBANDITS_URL: baseUrl, BUDGETBANDITS_KEY: key } = process.env;
if (!baseUrl || !key) throw new Error("set BUDGETBANDITS_URL and BUDGETBANDITS_KEY");
const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

/** The answer of a call, or an error with what the service says of it. */
function good<T>({ data, error }: { data?: T; error?: components["schemas"]["ProblemDetails"] }): T {
  if (error) throw new Error(`${error.title}: ${error.detail}`);
  if (data === undefined) throw new Error("the service answered nothing");
  return data;
}

/** A model of yours: what its answer cost, and whether it was right. */
async function answer(decision: Decision): Promise<{ cost: number; reward: number }> {
  const large = decision.arm === "large";
  return { cost: large ? 0.04 : 0.002, reward: Math.random() < (large ? 0.9 : 0.6) ? 1 : 0 };
}

const campaign = `models ${crypto.randomUUID()}`;
good(await api.POST("/v1/campaigns", { body: { name: campaign, budget: 0.5, arms: { large: 0.05, small: 0.002 } } }));

let decisions = 0;
for (;;) {
  const asked = await api.POST("/v1/campaigns/{campaign}/decisions", {
    params: { path: { campaign }, header: { "Idempotency-Key": crypto.randomUUID() } },
    body: { metadata: { request: decisions } },
  });
  if (asked.error?.title === "exhausted") break;
  const decision = good(asked);
  good(
    await api.POST("/v1/campaigns/{campaign}/decisions/{decision}/feedback", {
      params: { path: { campaign, decision: decision.decision } },
      body: await answer(decision),
    }),
  );
  decisions += 1;
}

const { spent, budget, arms } = good(await api.GET("/v1/campaigns/{campaign}", { params: { path: { campaign } } }));
console.log(`${decisions} decisions, ${spent} of ${budget} spent`);
for (const arm of arms) console.log(`${arm.name}: ${arm.pulls} pulls`);

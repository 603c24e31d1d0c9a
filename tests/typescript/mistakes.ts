// What the generated types must accept, and what they must refuse.

import type { components, operations } from "../../out/typescript/api.js";

type Schemas = components["schemas"];
type Refusal<Id extends keyof operations, Status extends keyof operations[Id]["responses"]> = operations[Id]["responses"][Status];

const usual = { name: "ads", budget: 10, arms: { search: 1, mail: 0.5 } };
export const least: Schemas["NewCampaign"] = usual;
export const more: Schemas["NewCampaign"] = { ...usual, on_expire: "release", horizon: 100, daily_cap: null };
export const empty: Schemas["DecisionRequest"] = {};
export const exhausted: Schemas["ProblemDetails"]["title"] = "exhausted";
export type Exhausted = Refusal<"decide", 402>;
export const problem = (refusal: Exhausted): Schemas["ProblemDetails"] => refusal.content["application/problem+json"];

// @ts-expect-error: a field that is misspelt
export const misspelt: Schemas["NewCampaign"] = { ...usual, daily_cpa: 1 };
// @ts-expect-error: a value that is none of the choices
export const choice: Schemas["NewCampaign"] = { ...usual, on_expire: "keep" };
// @ts-expect-error: a field that must be there
export const incomplete: Schemas["NewCampaign"] = { name: "ads", arms: {} };
// @ts-expect-error: no campaign has this status
export const status: Schemas["CampaignAnswer"]["status"] = "stopped";
// @ts-expect-error: no event is of this kind
export const kind: Schemas["EventAnswer"]["kind"] = "vanished";
// @ts-expect-error: no problem has this title
export const title: Schemas["ProblemDetails"]["title"] = "exhuasted";
// @ts-expect-error: feedback is never refused for lack of money
export type NoMoney = Refusal<"tell", 402>;
// @ts-expect-error: may be null
export const reward: number = ({} as Schemas["DecisionDetailAnswer"]).reward;

"""Adapters for programs that call language models: each call is a decision of a campaign, and pays its true price.

    openai   the OpenAI SDK: `BudgetedOpenAI` and `AsyncBudgetedOpenAI` have its ``chat.completions.create``
    litellm  LiteLLM's router and proxy: `BudgetCallback` chooses the deployment
    calls    what both share: prices, the most that a call can cost, and what an error means for the money

Each needs the package it is named after, which is not imported before it is used.
"""

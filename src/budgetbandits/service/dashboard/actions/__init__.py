"""Actions of operators on campaigns: always previewed, confirmed, and then executed once.

`catalog` lists the actions; `routes` are their pages. `flow` leads from a form to its preview and on to the confirmed
action, `fields` reads what was typed. `consequences` says what an action will change, from a snapshot of the campaign
and by the service's own rules; `terms` does so for changed terms.

Read `catalog` first.
"""

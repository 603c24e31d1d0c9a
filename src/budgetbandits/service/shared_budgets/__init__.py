"""One budget over several campaigns, each of which has a budget of its own as well.

rules       the record and the rules of its money
members     campaigns that join, leave and take money, in their own transactions
operations  for operators: create, change, look at
audit       the account compared with the events of all members
"""

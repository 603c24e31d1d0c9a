"""The hidden truth: what arms pay and cost, and what the best player could earn.

Read `problem` first: a problem is a list of arms, an arm is two `distributions`.

distributions, custom    laws of rewards and costs; laws of your own
problem, families        problems, their files, random and hard families of them
streams, drift           requests of several segments; laws that change with time
recorded                 recorded outcomes from files and tables
oracle, oracle_horizon   the best player, without and with a number of requests that the money must last for

No policy may import this package.
"""

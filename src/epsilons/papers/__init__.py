"""The papers' evaluations, measured again: `epsilons papers`.

figures.py       what is declared: papers, figures, panels, cells; and what was measured
claims.py        what a paper says, what was measured, the verdict; their pages
catalogue.py     which papers there are
expectations.py  a mechanism's answers with its randomness integrated out
floors.py        how little a private median can err
population.py    the made-up users of Jorgensen et al. 2015
running.py       measures cells in several processes and keeps them
drawing.py       one style for each curve, one picture for each figure
report.py        what a run leaves in its directory
pdp/             Jorgensen et al. 2015
idp/             Soria-Comas et al. 2017
sampling/        Joy and Gerla 2017
mixed/           Ferrando et al. 2021
together.py      one figure over all four
"""

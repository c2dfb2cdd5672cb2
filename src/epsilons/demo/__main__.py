"""`python -m epsilons.demo`"""

import sys

from epsilons.demo.command import main

sys.exit(main())

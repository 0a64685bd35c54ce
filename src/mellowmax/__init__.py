from .operators import *
from .policies import *

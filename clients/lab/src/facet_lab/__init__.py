"""Error rates, groups and calibration of face models, from the file that ``facet models extract`` writes."""

from ._file import Lab, LabError, load

__all__ = ["Lab", "LabError", "load"]

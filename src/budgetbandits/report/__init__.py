"""Reports: figures and one self-contained HTML page."""

from budgetbandits.report.page import write_report

__all__ = ["write_report"]

"""The laboratory's page: studies, reports and studies that are still running, in a browser."""

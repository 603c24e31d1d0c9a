"""The dashboard: pages of the service for whoever runs it. Extra ``service``."""

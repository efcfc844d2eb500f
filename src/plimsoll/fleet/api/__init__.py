"""The REST API of the fleet manager: public routes, routes of agents and routes of administrators."""

"""The user's contract: the ModelDeployment as pydantic models, and the CRD rendered from them.

It is the lowest layer because everything else speaks its words. What can be refused by looking at one
object alone is refused here, as schema and CEL rules that the API server enforces at `kubectl apply`, so
there is no admission webhook to keep alive. It imports pydantic only (and PyYAML to write the CRD down), so
the API can be read, tested and published without a cluster or an engine.
"""

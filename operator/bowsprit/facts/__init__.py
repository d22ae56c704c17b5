"""What planning needs to know of a model, in numbers: layers, heads, bytes, and what divides what.

Facts come from config.json and safetensors headers, or from preflight, which asks the engine itself. The
planner must not care which: both become the same frozen ModelFacts here, with the source kept beside each
number so that a message can say how sure it is. No weights are read and nothing is downloaded by this
package; bytes come in, facts go out.
"""

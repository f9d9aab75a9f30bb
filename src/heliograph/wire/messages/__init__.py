"""Messages of Kafka's protocol that are decoded or encoded by our own code.

Pure. `fetch_response` and `produce_messages` serve the hot path without copies; `response_guard` checks the bytes of
all other responses along their schemas before kafka-python decodes them (`kafka/net/response_decoder` does both).
"""

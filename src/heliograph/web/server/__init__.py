"""The HTTP side of REST: `rest_server` (uvicorn, one thread), `app` (Starlette), `connections` and `forwarding`.

The only package that imports a web framework. It limits time, size and number of everything that clients send.
"""

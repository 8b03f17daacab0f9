"""OpenID Connect: the providers that the operator names, what they publish, and the tokens that they sign."""

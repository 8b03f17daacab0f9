// A real identity provider for the tests: oidc-provider on a free port of this machine.
//
// Standard input has its settings as JSON: private keys, clients, the API's audience, and the path of a file
// that says who the people are. That file is read whenever somebody signs in or gets a token.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import Provider from "oidc-provider";

const settings = JSON.parse(readFileSync(0, "utf8"));
const people = () => JSON.parse(readFileSync(settings.people, "utf8"));
const server = createServer();

server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: settings.clients,
    jwks: settings.jwks,
    cookies: { keys: ["for tests alone"] },
    claims: { openid: ["sub"], profile: ["preferred_username", "groups"] },
    conformIdTokenClaims: false,
    scopes: ["openid", "profile", "offline_access"],
    findAccount: (_context, id) => {
      const person = people()[id];
      return person && { accountId: id, claims: () => ({ sub: id, preferred_username: id, ...person }) };
    },
    extraTokenClaims: (_context, token) => ({ preferred_username: token.accountId, ...people()[token.accountId] }),
    ttl: { AccessToken: 600, Grant: 3600, IdToken: 600, Interaction: 600, Session: 3600, RefreshToken: 3600, DeviceCode: 300 },
    features: {
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context, resource) => ({
          scope: "openid profile",
          audience: resource,
          accessTokenTTL: 600,
          accessTokenFormat: "jwt",
        }),
      },
    },
  });
  server.on("request", provider.callback());
  console.log(issuer);
});

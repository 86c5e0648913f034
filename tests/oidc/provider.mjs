// An identity provider with one client and one API.
//
// Arguments: the port, and the signing algorithm of its one key (RS256, PS256, ES256, Ed25519, ...).
// The key is new at every start. The variable CLAIMS is JSON that is added to every token.
// Prints `ready` once it listens.

import { generateKeyPairSync, randomUUID } from "node:crypto";
import Provider from "oidc-provider";

const [port, algorithm] = process.argv.slice(2);
const claims = JSON.parse(process.env.CLAIMS);

const kinds = {
  RS256: ["rsa", { modulusLength: 2048 }],
  PS256: ["rsa", { modulusLength: 2048 }],
  ES256: ["ec", { namedCurve: "P-256" }],
  ES384: ["ec", { namedCurve: "P-384" }],
  EdDSA: ["ed25519", {}],
  Ed25519: ["ed25519", {}],
};
const key = generateKeyPairSync(...kinds[algorithm]).privateKey.export({ format: "jwk" });

const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: { keys: [{ ...key, kid: randomUUID(), use: "sig", alg: algorithm }] },
  clients: [
    {
      client_id: "dashboard",
      client_secret: "the-dashboard-of-the-tests",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
      id_token_signed_response_alg: algorithm,
    },
  ],
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_context, resource) => ({
        scope: "loupe",
        audience: resource,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: algorithm } },
      }),
    },
  },
  extraTokenClaims: () => claims,
});

provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));

// An identity provider for one client: the server whose URL is the first argument. The second one names the algorithm of
// ID tokens, the third one where the claims of a person are: in `id_token` or in `userinfo`.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import Provider from "oidc-provider";

const [server, algorithm, place] = process.argv.slice(2);
const people = {
  ada: { name: "Ada", email: "ada@example.com", email_verified: true, groups: ["ops", "dev"] },
  eve: { name: "Eve", email: "ada@example.com", email_verified: false, groups: ["readers"] },
  bob: { name: "Bob", groups: ["guests"] },
};
const pairs = {
  RS256: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
  EdDSA: () => generateKeyPairSync("ed25519"),
};
const keys = ["RS256", "ES256", "EdDSA"].map((alg) => {
  return { ...pairs[alg]().privateKey.export({ format: "jwk" }), alg, kid: alg, use: "sig" };
});

const listener = createServer((request, response) => handle(request, response));
let handle;
listener.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${listener.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "tenure",
        client_secret: "hush hush",
        redirect_uris: [`${server}/ui/sign-in/callback`],
        post_logout_redirect_uris: [`${server}/ui/sign-in`],
        id_token_signed_response_alg: algorithm,
      },
    ],
    claims: { openid: ["sub"], profile: ["name"], email: ["email", "email_verified"], groups: ["groups"] },
    conformIdTokenClaims: place === "userinfo",
    cookies: { keys: ["for tests only"] },
    enabledJWA: { idTokenSigningAlgValues: ["RS256", "ES256", "EdDSA"] },
    findAccount: (_, sub) => people[sub] && { accountId: sub, claims: () => ({ sub, ...people[sub] }) },
    jwks: { keys },
    pkce: { required: () => true },
  });
  handle = provider.callback();
  console.log(`provider at ${issuer}`);
});

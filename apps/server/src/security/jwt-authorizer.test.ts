import { Code } from "@connectrpc/connect";
import { silentLogger, systemClock } from "@plinth/runtime";
import { createLocalJWKSet, exportJWK, generateKeyPair, SignJWT } from "jose";
import { expect, it } from "vitest";
import { JwtAuthorizer } from "./jwt-authorizer.ts";

const claims = { issuer: "https://issuer.test", audience: "plinth" };

async function keyPair() {
	const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
	return { keys: createLocalJWKSet({ keys: [await exportJWK(publicKey)] }), privateKey };
}

it("verifies a token again that was being verified while the keys changed", async () => {
	const [withdrawn, current] = await Promise.all([keyPair(), keyPair()]);
	const authorizer = new JwtAuthorizer({ ...claims, clock: systemClock, logger: silentLogger });
	const token = await new SignJWT({ sub: "alice" })
		.setProtectedHeader({ alg: "ES256" })
		.setIssuer(claims.issuer)
		.setAudience(claims.audience)
		.setExpirationTime("1h")
		.sign(withdrawn.privateKey);
	authorizer.setKeys(async (...found) => {
		const key = await withdrawn.keys(...found);
		authorizer.setKeys(current.keys);
		return key;
	});
	expect((await authorizer.authenticate(token)).subject).toBe("alice");
	await expect(authorizer.authenticate(token)).rejects.toMatchObject({
		code: Code.Unauthenticated,
	});
	authorizer.close();
});

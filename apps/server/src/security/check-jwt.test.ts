import { Code } from "@connectrpc/connect";
import { silentLogger, systemClock } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import {
	type CryptoKey,
	createLocalJWKSet,
	exportJWK,
	generateKeyPair,
	type JWTVerifyGetKey,
	SignJWT,
} from "jose";
import { expect, it, vi } from "vitest";
import { JwtAuthorizer } from "./check-jwt.ts";

const claims = { issuer: "https://issuer.test", audience: "plinth" };

async function keyPair() {
	const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
	return { keys: createLocalJWKSet({ keys: [await exportJWK(publicKey)] }), privateKey };
}

function sign(key: CryptoKey): Promise<string> {
	return new SignJWT({ sub: "alice" })
		.setProtectedHeader({ alg: "ES256" })
		.setIssuer(claims.issuer)
		.setAudience(claims.audience)
		.setExpirationTime("1h")
		.sign(key);
}

it("verifies a token again that was being verified while the keys changed", async () => {
	const [withdrawn, current] = await Promise.all([keyPair(), keyPair()]);
	const authorizer = new JwtAuthorizer({ ...claims, clock: systemClock, logger: silentLogger });
	const token = await sign(withdrawn.privateKey);
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

it("ends the access of a token whose key was removed, unless the keys can't be fetched", async () => {
	const [withdrawn, current] = await Promise.all([keyPair(), keyPair()]);
	const clock = new FakeClock({ nowMs: Date.now() });
	const authorizer = new JwtAuthorizer({ ...claims, clock, logger: silentLogger });
	let lookUp: JWTVerifyGetKey = withdrawn.keys;
	let lookUps = 0;
	authorizer.setKeys((...found) => {
		lookUps += 1;
		return lookUp(...found);
	});
	const { ended } = await authorizer.authenticate(await sign(withdrawn.privateKey));
	const minutes = async (count: number) => {
		for (let minute = 0; minute < count; minute++) {
			clock.advance(60_000);
			// When all have been verified, the next look is due in a minute.
			await vi.waitFor(() => expect(clock.nextTimerMs()).toBe(60_000), { timeout: 300_000 });
		}
	};
	await minutes(5);
	expect(lookUps).toBe(2);
	lookUp = () => Promise.reject(new Error("the address can't be reached"));
	await minutes(5);
	expect(lookUps).toBe(3);
	expect(ended?.aborted).toBe(false);
	lookUp = current.keys;
	await minutes(1);
	expect(ended?.aborted).toBe(true);
	authorizer.close();
});

it("tells when the tokens expire that it has verified, with the tolerated difference between clocks", async () => {
	const { keys, privateKey } = await keyPair();
	const nowMs = 1_000 * Math.floor(Date.now() / 1_000);
	const clock = new FakeClock({ nowMs });
	const authorizer = new JwtAuthorizer({ ...claims, clock, logger: silentLogger });
	authorizer.setKeys(keys);
	const token = await new SignJWT({ sub: "alice" })
		.setProtectedHeader({ alg: "ES256" })
		.setIssuer(claims.issuer)
		.setAudience(claims.audience)
		.setExpirationTime(nowMs / 1_000 + 60)
		.sign(privateKey);
	expect(authorizer.expiryOf(token)).toBeUndefined();
	await authorizer.authenticate(token);
	expect(authorizer.expiryOf(token)).toBe(nowMs + 90_000);
	authorizer.close();
});

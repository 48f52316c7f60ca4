import { createServer, type ServerResponse } from "node:http";
import { FakeClock } from "@plinth/runtime/testing";
import { errors } from "jose";
import { expect, it, onTestFinished } from "vitest";
import { keysAt } from "./jwt-keys.ts";

it.each([
	["no response", () => {}],
	["half of a response", (response: ServerResponse) => void response.write('{ "keys": [')],
])("keys at an address are waited for 5 s: %s", async (_name, respond) => {
	const requested = Promise.withResolvers<void>();
	const closed = Promise.withResolvers<void>();
	const keyServer = createServer((_request, response) => {
		response.once("close", () => closed.resolve());
		respond(response);
		requested.resolve();
	});
	await new Promise<void>((resolve) => keyServer.listen(0, "127.0.0.1", resolve));
	onTestFinished(() => {
		keyServer.closeAllConnections();
		keyServer.close();
	});
	const bound = keyServer.address();
	const port = typeof bound === "object" && bound !== null ? bound.port : 0;
	const clock = new FakeClock();
	const keys = keysAt(new URL(`http://127.0.0.1:${port}/keys`), clock);
	let isWaiting = true;
	const found = Promise.resolve(keys({ alg: "ES256" }, { payload: "", signature: "" })).finally(
		() => {
			isWaiting = false;
		},
	);
	const outcome = found.catch((failure) => failure);
	await requested.promise;
	await clock.advanceAsync(4_999);
	expect(isWaiting).toBe(true);
	await clock.advanceAsync(1);
	expect(await outcome).toBeInstanceOf(errors.JWKSTimeout);
	await closed.promise;
});

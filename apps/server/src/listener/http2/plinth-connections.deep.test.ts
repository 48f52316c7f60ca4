import { once } from "node:events";
import { connect } from "node:net";
import { expect, it } from "vitest";
import { startListener } from "../../started-listener.fixture.ts";
import { echoRouter } from "../echo-router.fixture.ts";
import { recordCalls } from "./tapped-session.fixture.ts";

const read = "/plinth.resource.v1.ResourceService/Read";
const name = "the name that is read";

it("1,000 connections that are opened at once are all served, three times", async () => {
	const { address, exchanges } = await startListener(echoRouter({}));
	const calls = await recordCalls(address, read, [JSON.stringify({ id: { name } })]);
	for (let round = 0; round < 3; round += 1) {
		const served = Array.from({ length: 1_000 }, async () => {
			const socket = connect(Number(new URL(address).port), "127.0.0.1");
			let received = "";
			socket.setEncoding("latin1").on("data", (text: string) => {
				received += text;
				if (received.includes(name)) {
					socket.end();
				}
			});
			socket.write(calls);
			await once(socket, "close");
			return received.includes(name);
		});
		expect((await Promise.all(served)).filter(Boolean)).toHaveLength(1_000);
	}
	expect([exchanges.open, exchanges.pendingBytes]).toEqual([0, 0]);
});

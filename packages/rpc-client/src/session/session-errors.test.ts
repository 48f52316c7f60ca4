import { once } from "node:events";
import { connect, createServer } from "node:net";
import { expect, it } from "vitest";
import { connectionError } from "./session-errors.ts";

it("names every address of a host that could not be reached", async () => {
	const server = createServer().listen(0, "127.0.0.1");
	await once(server, "listening");
	const port = Number(Object(server.address()).port);
	server.close();
	await once(server, "close");
	const socket = connect({
		...{ host: "twice.test", port, autoSelectFamily: true },
		lookup: (_host, _options, found) =>
			found(null, [
				{ address: "127.0.0.1", family: 4 },
				{ address: "::1", family: 6 },
			]),
	});
	const error = await new Promise<Error>((resolve) => socket.once("error", resolve));
	expect(connectionError("http://twice.test", error).rawMessage).toMatch(
		/^http:\/\/twice\.test: connect E\w+ 127\.0\.0\.1:\d+; connect E\w+ ::1:\d+/,
	);
});

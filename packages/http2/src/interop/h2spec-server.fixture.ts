/** The server that h2spec tests. It prints its port. */
import { createServer } from "node:net";
import { serveHttp2 } from "../index.ts";

const server = createServer((socket) => {
	serveHttp2(socket, {}, (stream) => ({
		onData: (bytes) => stream.consume(bytes.length),
		onEnd: () => {
			stream.respond(200, ["content-type", "text/plain"]);
			stream.end(Buffer.from("hello"));
		},
		onReset: () => {},
	}));
});
server.listen(0, "127.0.0.1", () => {
	const address = server.address();
	if (address !== null && typeof address === "object") {
		console.log(address.port);
	}
});

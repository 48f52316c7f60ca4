import { strict as assert } from "node:assert";
import { once } from "node:events";
import http2 from "node:http2";
import { type Duplex, duplexPair } from "node:stream";
import { connectHttp2 } from "../connect.ts";
import type { Fields, Http2ClientConnection } from "../http2.ts";
import { Draw } from "../properties/draw.fixture.ts";
import { serveHttp2 } from "../serve.ts";

/** What a server receives of a request, and what it sends back. */
interface Exchange {
	readonly headers: Readonly<Record<string, string>>;
	readonly method: string;
	readonly path: string;
	readonly body: readonly Buffer[];
	readonly trailers: Readonly<Record<string, string>>;
	readonly status: number;
	readonly responseFields: readonly (readonly [string, string])[];
	readonly responseBody: readonly Buffer[];
	readonly responseTrailers: readonly (readonly [string, string])[];
}

/** What one server has received, or its client. */
interface Message {
	readonly head: Fields;
	readonly body: string;
	readonly trailers: Fields;
}

const names = [
	"accept",
	"authorization",
	"cookie",
	"grpc-timeout",
	"te",
	"user-agent",
	"x-a",
	"x-b",
];

function randomValue(draw: Draw): string {
	const characters = [..."abcdefghij0123456789!#$%&'*+-.^_`|~/=;,\xe4\xff"];
	return Array.from({ length: draw.size(60) }, () => draw.pick(characters)).join("");
}

function randomFields(draw: Draw, count: number): readonly (readonly [string, string])[] {
	const fields = Array.from({ length: draw.below(count + 1) }, () => {
		const name = draw.pick(names);
		return [
			name,
			name === "te" ? "trailers" : draw.chance(0.5) ? "same" : randomValue(draw),
		] as const;
	});
	return [...new Map(fields)];
}

/** Of pieces that are not empty: streams of node:http2 do not close after an empty last one. */
function randomBody(draw: Draw): readonly Buffer[] {
	return Array.from({ length: draw.below(4) }, () =>
		Buffer.alloc(1 + draw.size(60_000), draw.below(256)),
	);
}

function randomExchange(draw: Draw): Exchange {
	const hasBody = draw.chance(0.7);
	return {
		headers: Object.fromEntries(randomFields(draw, 6)),
		method: hasBody ? "POST" : draw.pick(["GET", "DELETE", "OPTIONS"]),
		path: `/${draw.pick(["", "a", "plinth.resource.v1.ResourceService/Read?x=%20"])}`,
		body: hasBody ? randomBody(draw) : [],
		trailers: hasBody && draw.chance(0.3) ? Object.fromEntries(randomFields(draw, 3)) : {},
		status: draw.pick([200, 404, 503]),
		responseFields: randomFields(draw, 4),
		responseBody: randomBody(draw),
		responseTrailers: draw.chance(0.6) ? randomFields(draw, 3) : [],
	};
}

/** Serves the exchanges, the first one to the first request and so on; resolves with what was received. */
type Server = (socket: Duplex, exchanges: readonly Exchange[], received: Message[]) => void;

const ownServer: Server = (socket, exchanges, received) => {
	serveHttp2(socket, {}, (stream, head) => {
		const index = (stream.id - 1) / 2;
		const chunks: Buffer[] = [];
		return {
			onData: (bytes) => {
				chunks.push(Buffer.from(bytes));
				stream.consume(bytes.length);
			},
			onEnd: (trailers) => {
				const pseudo = [":path", head.path, ":method", head.method];
				const more = [":authority", head.authority, ":scheme", head.scheme];
				received[index] = {
					head: sorted([...pseudo, ...more, ...head.fields]),
					body: Buffer.concat(chunks).toString("latin1"),
					trailers: sorted(trailers),
				};
				const exchange = exchanges[index];
				stream.respond(exchange?.status ?? 0, exchange?.responseFields.flat() ?? []);
				for (const piece of exchange?.responseBody ?? []) {
					stream.write(piece);
				}
				stream.end(undefined, exchange?.responseTrailers.flat());
			},
			onReset: () => {},
		};
	});
};

const nodeServer: Server = (socket, exchanges, received) => {
	const session = http2.performServerHandshake(socket);
	session.on("stream", (stream, _headers, _flags, rawHeaders) => {
		const index = ((stream.id ?? 0) - 1) / 2;
		const chunks: Buffer[] = [];
		let trailers: Fields = [];
		stream.on("trailers", (_trailers, _trailerFlags, rawTrailers) => {
			trailers = rawTrailers;
		});
		stream.on("data", (chunk: Buffer) => chunks.push(chunk));
		stream.on("end", () => {
			received[index] = {
				head: sorted(rawHeaders),
				body: Buffer.concat(chunks).toString("latin1"),
				trailers: sorted(trailers),
			};
			const exchange = exchanges[index];
			const responseTrailers = exchange?.responseTrailers ?? [];
			stream.respond(
				{ ":status": exchange?.status, ...Object.fromEntries(exchange?.responseFields ?? []) },
				{ waitForTrailers: responseTrailers.length > 0 },
			);
			stream.on("wantTrailers", () => stream.sendTrailers(Object.fromEntries(responseTrailers)));
			for (const piece of exchange?.responseBody ?? []) {
				stream.write(piece);
			}
			stream.end();
		});
	});
};

/** Fields in the order of their names: node:http2 moves some. */
function sorted(fields: Fields): Fields {
	const pairs: (readonly [string, string])[] = [];
	for (let index = 0; index < fields.length; index += 2) {
		const [name = "", value = ""] = fields.slice(index, index + 2);
		// Only node:http2 adds one.
		if (name !== "date") {
			pairs.push([name, value]);
		}
	}
	return pairs.toSorted(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0)).flat();
}

/** Sends the exchanges' requests, and resolves with the responses when the connection has closed. */
type Client = (
	socket: Duplex,
	exchanges: readonly Exchange[],
	settings: http2.Settings,
) => Promise<readonly Message[]>;

const nodeClient: Client = async (socket, exchanges, settings) => {
	const client = http2.connect("http://localhost", { createConnection: () => socket, settings });
	const responses = await Promise.all(exchanges.map((exchange) => send(client, exchange)));
	client.close();
	await once(client, "close");
	return responses;
};

const ownClient: Client = async (socket, exchanges, { initialWindowSize = 65_535 }) => {
	const client = connectHttp2(socket, { limits: { streamWindowBytes: initialWindowSize } });
	const responses = await Promise.all(exchanges.map((exchange) => request(client, exchange)));
	await client.close();
	return responses;
};

function request(client: Http2ClientConnection, exchange: Exchange): Promise<Message> {
	const { headers, method, path, body, trailers } = exchange;
	const pseudo = [
		":method",
		method,
		":authority",
		"localhost:80",
		":scheme",
		"http",
		":path",
		path,
	];
	return new Promise((resolve, reject) => {
		let head: Fields = [];
		let responseTrailers: Fields = [];
		const chunks: Buffer[] = [];
		const stream = client.request([...pseudo, ...Object.entries(headers).flat()], {
			onHead: (status, fields) => {
				head = [":status", `${status}`, ...fields];
			},
			onData: (bytes) => {
				chunks.push(Buffer.from(bytes));
				stream.consume(bytes.length);
			},
			onEnd: (received) => {
				responseTrailers = received;
			},
			onFinish: () =>
				resolve({
					head: sorted(head),
					body: Buffer.concat(chunks).toString("latin1"),
					trailers: sorted(responseTrailers),
				}),
			onReset: (code, origin) => reject(new Error(`reset with ${code} by ${origin}`)),
		});
		for (const piece of body) {
			stream.write(piece);
		}
		stream.end(undefined, Object.entries(trailers).flat());
	});
}

async function exchangeWith(
	server: Server,
	client: Client,
	exchanges: readonly Exchange[],
	settings: http2.Settings,
): Promise<{ readonly requests: readonly Message[]; readonly responses: readonly Message[] }> {
	const [clientSocket, serverSocket] = duplexPair();
	const requests: Message[] = [];
	server(serverSocket, exchanges, requests);
	const responses = await client(clientSocket, exchanges, settings);
	return { requests, responses };
}

async function send(client: http2.ClientHttp2Session, exchange: Exchange): Promise<Message> {
	const { headers, method, path, body, trailers } = exchange;
	const hasTrailers = Object.keys(trailers).length > 0;
	const stream = client.request({ ...headers, ":method": method, ":path": path }, {
		waitForTrailers: hasTrailers,
		endStream: method !== "POST",
	} as object);
	stream.on("wantTrailers", () => stream.sendTrailers(trailers));
	let head: Fields = [];
	let responseTrailers: Fields = [];
	stream.on("response", (_headers, _flags, rawHeaders) => {
		head = rawHeaders;
	});
	stream.on("trailers", (_trailers, _flags, rawTrailers) => {
		responseTrailers = rawTrailers;
	});
	const chunks: Buffer[] = [];
	stream.on("data", (chunk: Buffer) => chunks.push(chunk));
	for (const piece of body) {
		stream.write(piece);
	}
	if (method === "POST") {
		stream.end();
	}
	await once(stream, "close");
	return {
		head: sorted(head),
		body: Buffer.concat(chunks).toString("latin1"),
		trailers: sorted(responseTrailers),
	};
}

/**
 * Sends the same requests with the clients and to the servers of this package and of node:http2. All servers must receive
 * the same, and all clients too.
 */
export async function compareImplementations(seed: number): Promise<void> {
	const draw = new Draw(seed);
	const exchanges = Array.from({ length: 1 + draw.below(30) }, () => randomExchange(draw));
	const settings = {
		headerTableSize: draw.pick([0, 100, 4096, 65_536]),
		initialWindowSize: draw.pick([1000, 65_535, 1_000_000]),
	};
	const expected = await exchangeWith(nodeServer, nodeClient, exchanges, settings);
	for (const [server, client] of [
		[ownServer, nodeClient],
		[nodeServer, ownClient],
		[ownServer, ownClient],
	] as const) {
		assert.deepEqual(await exchangeWith(server, client, exchanges, settings), expected);
	}
}

import { Buffer } from "node:buffer";
import { constants, type ServerHttp2Stream } from "node:http2";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { seededRandom } from "@plinth/runtime/testing";
import { forEachSeed } from "@plinth/test-support";
import { expect, it } from "vitest";
import { ProbeService } from "../testdata/src/gen/probe_pb.ts";
import { framed, openRawServer, withPrefix } from "./raw-server.fixture.ts";
import { createPlinthTransport } from "./transport.ts";

/** A response, well-formed or not. */
interface Response {
	readonly headers: Readonly<Record<string, string | number>>;
	/** In these pieces. */
	readonly body: readonly Buffer[];
	readonly end: "trailers" | "nothing" | number;
	readonly trailers: Readonly<Record<string, string>>;
	/** Whether there are no bytes and no trailers, as if the server knew its status at once. */
	readonly isOnlyHeaders: boolean;
}

/** What a caller sees. */
interface Outcome {
	readonly texts: readonly string[];
	readonly error?: {
		readonly code: string;
		readonly message: string;
		readonly details: readonly string[];
		readonly probe: string | null;
	};
	readonly header?: string | null | undefined;
	readonly trailer?: string | null | undefined;
}

/** An outcome that differs on purpose. */
interface Difference {
	readonly what: string;
	/** @param library - what connect-node reports; `own`: what this transport does. */
	applies(response: Response, library: Outcome, own: Outcome): boolean;
}

/** The first that applies counts. */
const differences: readonly Difference[] = [
	{
		what: "errors of a response that is not gRPC say more, and have its headers",
		applies: (_response, { error: library }, { error: own }) =>
			own !== undefined &&
			own.code === library?.code &&
			own.message.startsWith(`${library.message}: `),
	},
	{
		what: "JSON is refused, whatever follows: this side has sent no JSON",
		applies: ({ headers }, _library, { error }) =>
			headers["content-type"] === "application/grpc+json" && error?.code === "Unknown",
	},
	{
		what: "a missing message is Unimplemented, also if the status is in the headers",
		applies: (_response, { error: library }, { error: own }) =>
			own?.message === library?.message && own?.code === "Unimplemented",
	},
	{
		what: "a status of 0 is OK, whatever the details are",
		applies: ({ trailers, headers }) =>
			[trailers, headers].some(
				(fields) => fields["grpc-status"] === "0" && "grpc-status-details-bin" in fields,
			),
	},
	{
		what: "details that can't be decoded are dropped, and the status stays",
		applies: ({ trailers, headers }, library, own) =>
			[trailers, headers].some((fields) => fields["grpc-status-details-bin"] === "AAAA") &&
			library.error?.code === "DataLoss" &&
			own.error?.details.length === 0,
	},
	{
		what: "a message of an error with malformed escapes is shown as it is",
		applies: ({ trailers, headers }, library, own) =>
			[trailers, headers].some((fields) => fields["grpc-message"] === "%zz") &&
			library.error?.message === "URI malformed" &&
			own.error?.message === "%zz",
	},
	{
		what: "REFUSED_STREAM is Unavailable, not Internal: the server has not processed the call",
		applies: ({ end }, _library, own) =>
			end === constants.NGHTTP2_REFUSED_STREAM && own.error?.code === "Unavailable",
	},
	{
		what: "a reset has the code that gRPC maps it to, and the name of it in the message",
		applies: ({ end }, _library, own) =>
			typeof end === "number" && own.error?.message.startsWith("http/2 stream closed") === true,
	},
	{
		what: "a response that ends within a message is Internal, not InvalidArgument",
		applies: (_response, library, own) =>
			library.error?.code === "InvalidArgument" &&
			own.error?.message === "protocol error: incomplete message",
	},
	{
		what: "an error in the status is reported, though the messages before it are malformed",
		applies: ({ trailers, headers }, _library, own) =>
			[trailers, headers].some(
				({ "grpc-status": status }) => status !== undefined && status !== "0",
			) && own.error?.probe !== null,
	},
	{
		what: "a message with unknown flags is Internal; connect-node decodes it",
		applies: (_response, _library, { error }) =>
			error?.code === "Internal" && error.message.includes("unknown flags"),
	},
	{
		what: "the error of a compressed message says that none was asked for",
		applies: (_response, library, { error }) =>
			error?.code === "Internal" &&
			library.error?.code === "Internal" &&
			error.message.includes("received compressed message"),
	},
	{
		what: "a second message of a unary response is reported before the first is decoded",
		applies: (_response, library, own) =>
			library.error !== undefined &&
			own.error?.message.includes("received extra output message") === true,
	},
	{
		what: "of two faults the status that is missing is reported, not the malformed message",
		applies: (_response, library, { error }) =>
			library.error !== undefined && error?.message === "protocol error: missing status",
	},
	{
		what: "messages are read one by one: those before a malformed one are delivered, whatever follows it",
		applies: (_response, library, own) =>
			library.error !== undefined &&
			own.error !== undefined &&
			(own.texts.length > library.texts.length || library.error.code === "ResourceExhausted"),
	},
];

/** A response that is chosen by a seed: mostly well-formed, with one or two faults. */
function responseOf(seed: number): Response {
	const random = seededRandom(seed);
	const pick = <T>(...choices: readonly [T, ...T[]]): T =>
		choices[Math.floor(random.next() * choices.length)] ?? choices[0];
	const usually = <T>(usual: T, ...others: readonly [T, ...T[]]): T =>
		random.next() < 0.8 ? usual : pick(...others);
	const message = () =>
		usually(
			framed({
				text: `text ${Math.floor(random.next() * 100)}`,
				data: Buffer.alloc(pick(0, 10, 20_000)),
			}),
			framed({ text: "compressed" }, 1),
			framed({ text: "odd" }, 2),
			withPrefix(Buffer.from([0xff, 0xff, 0xff])),
			withPrefix(Buffer.alloc(0)),
			withPrefix(Buffer.from("short"), 0, 9),
			withPrefix(Buffer.alloc(100_001)),
		);
	const bytes = Buffer.concat(Array.from({ length: pick(1, 1, 1, 0, 2, 3) }, message));
	const status: Readonly<Record<string, string>> = {
		"grpc-status": usually("0", "5", "13", "99", "x", ""),
		...(random.next() < 0.5 && {
			"grpc-message": pick("not%20found", "%zz", "", "\u0025C3\u0025A4", "plain"),
		}),
		...(random.next() < 0.2 && { "grpc-status-details-bin": pick(details, "AAAA") }),
		"x-probe": "of the trailers",
	};
	const isOnlyHeaders = random.next() < 0.15;
	const statusIsInHeaders = isOnlyHeaders || random.next() < 0.05;
	const { "x-probe": probe, ...statusOnly } = status;
	return {
		headers: {
			":status": usually(200, 200, 204, 400, 401, 403, 404, 415, 429, 500, 502, 503, 504),
			...(random.next() < 0.95 && {
				"content-type": usually(
					"application/grpc+proto",
					"application/grpc",
					"application/grpc+json",
					"text/html",
					"application/proto",
				),
			}),
			...(random.next() < 0.05 && { "grpc-encoding": pick("gzip", "identity", "br") }),
			...(statusIsInHeaders && statusOnly),
			"x-probe": "of the headers",
		},
		body: isOnlyHeaders ? [] : pieces(bytes, random.next),
		end: usually<Response["end"]>("trailers", "nothing", Math.floor(random.next() * 14)),
		trailers: random.next() < 0.95 ? status : { ...(probe !== undefined && { "x-probe": probe }) },
		isOnlyHeaders,
	};
}

/** `google.rpc.Status` with code 5, a message and one detail. */
const details = Buffer.from(
	new Uint8Array([
		...[0x08, 5, 0x12, 3, ...Buffer.from("why")],
		...[0x1a, 0x2b, 0x0a, 0x29],
		...Buffer.from("type.googleapis.com/plinth.example.Detail"),
	]),
).toString("base64");

/** The bytes, cut at some places. */
function pieces(bytes: Buffer, next: () => number): readonly Buffer[] {
	const cuts = Array.from({ length: Math.floor(next() * 4) }, () =>
		Math.floor(next() * bytes.length),
	);
	const ends = [...cuts.sort((a, b) => a - b), bytes.length];
	return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

async function respond(stream: ServerHttp2Stream, response: Response): Promise<void> {
	const { headers, body, end, trailers, isOnlyHeaders } = response;
	if (isOnlyHeaders || headers[":status"] === 204) {
		stream.respond({ ...headers }, { endStream: true });
		return;
	}
	stream.respond({ ...headers }, { waitForTrailers: end !== "nothing" });
	if (end === "trailers") {
		stream.once("wantTrailers", () => stream.sendTrailers({ ...trailers }));
	}
	for (const piece of body) {
		await new Promise((resolve) => stream.write(piece, resolve));
		await new Promise((resolve) => setImmediate(resolve));
	}
	if (typeof end === "number") {
		stream.close(end);
	} else {
		stream.end();
	}
}

async function outcomeOf(
	client: Client<typeof ProbeService>,
	kind: "unary" | "serverStream",
): Promise<Outcome> {
	const texts: string[] = [];
	let header: string | null | undefined;
	let trailer: string | null | undefined;
	const options = {
		onHeader: (headers: Headers) => {
			header = headers.get("x-probe");
		},
		onTrailer: (trailers: Headers) => {
			trailer = trailers.get("x-probe");
		},
		timeoutMs: 60_000,
	};
	try {
		if (kind === "unary") {
			texts.push((await client.unary({}, options)).text);
		} else {
			for await (const { text } of client.serverStream({}, options)) {
				texts.push(text);
			}
		}
		return { texts, header, trailer };
	} catch (thrown) {
		const error = ConnectError.from(thrown);
		return {
			texts,
			error: {
				code: Code[error.code] ?? String(error.code),
				message: error.rawMessage,
				details: error.details.map((detail) =>
					"type" in detail ? detail.type : detail.desc.typeName,
				),
				probe: error.metadata.get("x-probe"),
			},
		};
	}
}

it("reports what connect-node reports, except for known differences", async () => {
	const responses = new Map<string, Response>();
	await using server = await openRawServer((stream, path) => {
		const response = responses.get(path);
		if (response === undefined) {
			throw new Error(`no response for ${path}`);
		}
		void respond(stream, response);
	});
	const { baseUrl } = server;
	const sessionManager = new Http2SessionManager(baseUrl);
	const library = createClient(
		ProbeService,
		createGrpcTransport({ baseUrl, sessionManager, acceptCompression: [], readMaxBytes: 100_000 }),
	);
	const transport = createPlinthTransport({ baseUrl, readMaxBytes: 100_000 });
	const own = createClient(ProbeService, transport);
	await forEachSeed(300, async (seed) => {
		const response = responseOf(seed);
		responses.set("/plinth.rpcclient.probe.v1.ProbeService/Unary", response);
		responses.set("/plinth.rpcclient.probe.v1.ProbeService/ServerStream", response);
		for (const kind of ["unary", "serverStream"] as const) {
			const expected = await outcomeOf(library, kind);
			const actual = await outcomeOf(own, kind);
			if (!differences.some(({ applies }) => applies(response, expected, actual))) {
				expect({ kind, response, ...actual }).toEqual({ kind, response, ...expected });
			}
		}
	});
	sessionManager.abort();
	transport.close();
});

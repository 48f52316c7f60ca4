import {
	create,
	type DescMessage,
	fromBinary,
	isMessage,
	type JsonValue,
	type Message,
	toJson,
} from "@bufbuild/protobuf";
import {
	ConfirmBlockadesRequestSchema,
	EstablishReferencesResponseSchema,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { TransportDecorator } from "../lab/lab.fixture.ts";
import type { RecordedExchange, RecordedExchanges } from "./recorded-exchanges.fixture.ts";

/** The side of each exchange that is of the release which was recorded. */
export type RecordedSide = "client" | "server";

/** Calls between deployments of which one side is of a release that was recorded. */
export class ReplayedExchanges {
	readonly #recorded: RecordedExchanges;
	readonly #side: RecordedSide;
	/** The uids of the recording, and those of this run. */
	readonly #uids = new Map<string, string>();
	/** The methods that were called. */
	readonly methods = new Set<string>();
	/** What the recorded release has not sent or received in this way. */
	readonly problems: string[] = [];

	constructor(recorded: RecordedExchanges, side: RecordedSide) {
		this.#recorded = recorded;
		this.#side = side;
	}

	/** Tells the uid that has this name in this run. */
	note(name: string, uid: string): void {
		this.#uids.set(this.#recorded.uids[name] ?? "", uid);
	}

	/**
	 * If the recorded side is the client, the server gets the bytes that it has sent, and must respond with all that the
	 * client got then. If it is the server, the client must send all that it has sent then, and gets the bytes of that
	 * response. Messages of this code may have further fields.
	 */
	readonly decorate: TransportDecorator = (transport) => ({
		unary: async (method, signal, timeoutMs, header, input, values) => {
			const before = this.#requestsLike(method, create(method.input, input));
			const sent = this.#sent(input, before);
			const response = await transport.unary(method, signal, timeoutMs, header, sent, values);
			const like = this.#responseLike(method, response.message, before);
			return isMessage(like, method.output) ? { ...response, message: like } : response;
		},
		stream: async (method, signal, timeoutMs, header, input, values) => {
			let request: Message = create(method.input);
			const send = <Init>(init: Init) => this.#sent(init, this.#requestsLike(method, request));
			// Decoded again for each response: it may name what did not exist when the stream began.
			const receive = (response: Message) =>
				this.#responseLike(method, response, this.#requestsLike(method, request));
			async function* requests() {
				for await (const each of input) {
					request = create(method.input, each);
					yield send(each);
				}
			}
			const response = await transport.stream(
				...([method, signal, timeoutMs, header, requests(), values] as const),
			);
			async function* messages() {
				for await (const each of response.message) {
					const like = receive(each);
					yield isMessage(like, method.output) ? like : each;
				}
			}
			return { ...response, message: messages() };
		},
	});

	/** What the server gets. */
	#sent<Init>(init: Init, like: readonly ReplayedExchange[]): Init {
		const [recorded] = like;
		if (this.#side === "server" || recorded === undefined) {
			return init;
		}
		const copy = { ...init };
		for (const key of Object.keys(Object(copy))) {
			Reflect.deleteProperty(Object(copy), key);
		}
		return Object.assign(Object(copy), recorded.request);
	}

	#requestsLike(
		{ name, input, output }: ReplayedMethod,
		request: Message,
	): readonly ReplayedExchange[] {
		this.methods.add(name);
		const like = this.#recorded.exchanges
			.filter(({ method }) => method === name)
			.map((each) => this.#decode(each, input, output))
			.filter((each) => contains(stable(input, request), stable(input, each.request)))
			.map((each) => ({ ...each, request: withNumbersOf(request, each.request) }));
		if (like.length === 0) {
			this.problems.push(`no request is like ${JSON.stringify(toJson(input, request))}`);
		}
		return like;
	}

	/** What the client gets. */
	#responseLike(
		{ name, output }: ReplayedMethod,
		response: Message,
		exchanges: readonly ReplayedExchange[],
	): Message {
		const like = exchanges
			.flatMap(({ responses }) => responses)
			.find((each) => contains(stable(output, response), stable(output, each)));
		if (like === undefined) {
			const text = JSON.stringify(toJson(output, response));
			this.problems.push(`no response of ${name} is like ${text}`);
		}
		return this.#side === "client" || like === undefined ? response : withNumbersOf(response, like);
	}

	#decode(
		{ request, responses }: RecordedExchange,
		input: DescMessage,
		output: DescMessage,
	): ReplayedExchange {
		return {
			request: fromBinary(input, this.#bytes(request)),
			responses: responses.map((each) => fromBinary(output, this.#bytes(each))),
		};
	}

	/** The bytes, with the uids of this run. They have the same length. */
	#bytes(base64: string): Uint8Array {
		const text = Buffer.from(base64, "base64").toString("latin1");
		const replaced = text.replaceAll(/[0-9A-Z]{26}/g, (uid) => this.#uids.get(uid) ?? uid);
		return Buffer.from(replaced, "latin1");
	}
}

interface ReplayedMethod {
	readonly name: string;
	readonly input: DescMessage;
	readonly output: DescMessage;
}

interface ReplayedExchange {
	readonly request: Message;
	readonly responses: readonly Message[];
}

/** The numbers of establishments are versions of the storage, which differ from run to run. */
function withNumbersOf(now: Message, recorded: Message): Message {
	if (
		isMessage(now, EstablishReferencesResponseSchema) &&
		isMessage(recorded, EstablishReferencesResponseSchema)
	) {
		for (const [at, each] of recorded.established.entries()) {
			each.establishment = now.established[at]?.establishment ?? 0n;
		}
	}
	if (
		isMessage(now, ConfirmBlockadesRequestSchema) &&
		isMessage(recorded, ConfirmBlockadesRequestSchema)
	) {
		for (const [at, each] of recorded.blockades.entries()) {
			each.establishment = now.blockades[at]?.establishment ?? 0n;
		}
	}
	return recorded;
}

/** The message without what differs from run to run: numbers of establishments and of schemas. */
function stable(type: DescMessage, message: Message): JsonValue {
	return JSON.parse(
		JSON.stringify(toJson(type, message), (key, value) =>
			key === "establishment" || key === "schema" ? undefined : value,
		),
	);
}

/** Whether the value has everything that the other one has. */
function contains(value: JsonValue | undefined, other: JsonValue): boolean {
	if (Array.isArray(other)) {
		return (
			Array.isArray(value) &&
			value.length === other.length &&
			other.every((each, at) => contains(value[at], each))
		);
	}
	if (typeof other === "object" && other !== null) {
		return (
			typeof value === "object" &&
			value !== null &&
			!Array.isArray(value) &&
			Object.entries(other).every(([key, each]) => contains(value[key], each))
		);
	}
	return value === other;
}

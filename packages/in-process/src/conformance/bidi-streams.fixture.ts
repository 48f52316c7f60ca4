import { Code, ConnectError } from "@connectrpc/connect";
import {
	type Behaviour,
	endlessRequests,
	errorOf,
	forever,
	happening,
	texts,
	textsOf,
} from "./behaviour.fixture.ts";

/** Methods with streams both ways. */
export const bidiBehaviours: readonly Behaviour[] = [
	{
		does: "answers each request while more are to come",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						for await (const { text } of requests) {
							yield { text: `re: ${text}` };
						}
					},
				},
			});
			let answered = happening();
			async function* requests() {
				for (const text of ["a", "b", "c"]) {
					yield { text };
					await answered.promise;
					answered = happening();
				}
			}
			const answers: string[] = [];
			for await (const { text } of client.bidi(requests())) {
				answers.push(text);
				answered.resolve();
			}
			return answers;
		},
		outcome: ["re: a", "re: b", "re: c"],
	},
	{
		does: "lets a handler speak first",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						yield { text: "hello" };
						yield { text: (await textsOf(requests)).join(" ") };
					},
				},
			});
			const greeted = happening();
			async function* requests() {
				await greeted.promise;
				yield { text: "hello too" };
			}
			const heard: string[] = [];
			for await (const { text } of client.bidi(requests())) {
				heard.push(text);
				greeted.resolve();
			}
			return heard;
		},
		outcome: ["hello", "hello too"],
	},
	{
		does: "lets a handler answer after all requests",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						const all = await textsOf(requests);
						yield* texts(...all.toReversed());
					},
				},
			});
			return textsOf(client.bidi(texts("1", "2", "3")));
		},
		outcome: ["3", "2", "1"],
	},
	{
		does: "lets a handler end before the requests do, and ends them",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						for await (const { text } of requests) {
							yield { text: text.slice(0, 4) };
							break;
						}
					},
				},
			});
			const { requests, ended } = endlessRequests();
			return [await textsOf(client.bidi(requests)), await ended];
		},
		outcome: [["more"], "returned"],
	},
	{
		does: "brings an error amid messages both ways",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						for await (const { text } of requests) {
							if (text === "b") {
								throw new ConnectError("not b", Code.InvalidArgument);
							}
							yield { text };
						}
					},
				},
			});
			return textsOf(client.bidi(texts("a", "b", "c")));
		},
		outcome: ["a", "InvalidArgument: not b"],
	},
	{
		does: "fails a stream both ways whose requests throw",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						for await (const { text } of requests) {
							yield { text };
						}
					},
				},
			});
			const answered = happening();
			async function* requests() {
				yield { text: "a" };
				await answered.promise;
				throw new ConnectError("no more ideas", Code.DataLoss);
			}
			const heard: string[] = [];
			const reading = (async () => {
				for await (const { text } of client.bidi(requests())) {
					heard.push(text);
					answered.resolve();
				}
			})();
			return [await errorOf(reading), heard];
		},
		outcome: ["DataLoss: no more ideas", ["a"]],
	},
	{
		does: "ends a stream both ways that its caller aborts",
		async play(connect) {
			const cleaned = happening<string>();
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						try {
							for await (const { text } of requests) {
								yield { text };
							}
						} finally {
							cleaned.resolve("cleaned up");
						}
					},
				},
			});
			const controller = new AbortController();
			async function* requests() {
				yield { text: "a" };
				await forever();
			}
			const heard: string[] = [];
			const reading = (async () => {
				for await (const { text } of client.bidi(requests(), { signal: controller.signal })) {
					heard.push(text);
					controller.abort();
				}
			})();
			return [await errorOf(reading), heard, await cleaned.promise];
		},
		outcome: ["Canceled: This operation was aborted", ["a"], "cleaned up"],
	},
	{
		does: "throws the caller's own abort into its waiting requests",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						for await (const { text } of requests) {
							yield { text };
						}
					},
				},
			});
			const controller = new AbortController();
			const { requests, ended } = endlessRequests();
			const reading = (async () => {
				for await (const _ of client.bidi(requests, { signal: controller.signal })) {
					controller.abort(new ConnectError("stop", Code.Canceled));
				}
			})();
			return [await errorOf(reading), await ended];
		},
		outcome: ["Canceled: stop", "threw Canceled: stop"],
	},
	{
		does: "ends a stream both ways in which nobody says anything",
		async play(connect) {
			const { client } = await connect({ handlers: { async *bidi() {} } });
			return textsOf(client.bidi(texts()));
		},
		outcome: [],
	},
	{
		does: "says nothing more to a handler that has broken off its requests",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						for await (const { text } of requests) {
							yield { text };
							break;
						}
						yield { text: `${(await textsOf(requests)).length} more` };
					},
				},
			});
			return textsOf(client.bidi(texts("a", "b")));
		},
		outcome: ["a", "0 more"],
	},
];

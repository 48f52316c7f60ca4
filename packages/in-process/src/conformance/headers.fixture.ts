import { type Behavior, happening } from "./behavior.fixture.ts";

/** Headers and trailers of a unary call. */
export const headerBehaviors: readonly Behavior[] = [
	{
		does: "delivers the caller's headers, whose names are case-insensitive",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					unary: (_, context) => ({ text: `${context.requestHeader.get("X-PROBE")}` }),
				},
			});
			return (await client.unary({}, { headers: { "x-Probe": "yes" } })).text;
		},
		outcome: "yes",
	},
	{
		does: "joins the values of a header that a caller repeats",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: (_, context) => ({ text: `${context.requestHeader.get("x-probe")}` }) },
			});
			const headers = new Headers({ "x-probe": "one" });
			headers.append("x-probe", "two");
			return (await client.unary({}, { headers })).text;
		},
		outcome: "one, two",
	},
	{
		does: "has no headers that were not sent",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: (_, context) => ({ text: `${context.requestHeader.get("x-probe")}` }) },
			});
			return (await client.unary({})).text;
		},
		outcome: "null",
	},
	{
		does: "reads the caller's headers when the call is made",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: (_, context) => ({ text: `${context.requestHeader.get("x-probe")}` }) },
			});
			const headers = new Headers({ "x-probe": "at the call" });
			const call = client.unary({}, { headers });
			headers.set("x-probe", "later");
			return (await call).text;
		},
		outcome: "at the call",
	},
	{
		does: "does not show the caller what a handler changes in the request headers",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					unary: (_, context) => {
						const had = context.requestHeader.get("x-probe");
						context.requestHeader.set("x-probe", "changed");
						return { text: `${had}` };
					},
				},
			});
			const headers = new Headers({ "x-probe": "mine" });
			await client.unary({}, { headers });
			return [(await client.unary({}, { headers })).text, headers.get("x-probe")];
		},
		outcome: ["mine", "mine"],
	},
	{
		does: "delivers response headers and trailers separately",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					unary: (_, context) => {
						context.responseHeader.set("X-Head", "1");
						context.responseTrailer.set("X-Trail", "2");
						return {};
					},
				},
			});
			const saw: unknown[] = [];
			await client.unary(
				{},
				{
					onHeader: (headers) => saw.push(headers.get("x-head"), headers.get("x-trail")),
					onTrailer: (trailers) => saw.push(trailers.get("x-head"), trailers.get("x-trail")),
				},
			);
			return saw;
		},
		outcome: ["1", null, null, "2"],
	},
	{
		does: "joins the values of a response header that a handler repeats",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					unary: (_, context) => {
						context.responseHeader.append("x-head", "1");
						context.responseHeader.append("x-head", "2");
						return {};
					},
				},
			});
			const saw = happening<string | null>();
			await client.unary({}, { onHeader: (headers) => saw.resolve(headers.get("x-head")) });
			return saw.promise;
		},
		outcome: "1, 2",
	},
	{
		does: "gives headers and trailers to a caller whose handler set none",
		async play(connect) {
			const { client } = await connect({ handlers: { unary: () => ({}) } });
			const saw: unknown[] = [];
			await client.unary(
				{},
				{
					onHeader: (headers) => saw.push(headers.has("x-head")),
					onTrailer: (trailers) => saw.push(trailers.has("x-trail")),
				},
			);
			return saw;
		},
		outcome: [false, false],
	},
	{
		does: "does not change a response when its handler changes the headers later",
		async play(connect) {
			const late = happening();
			const changed = happening();
			const { client } = await connect({
				handlers: {
					unary: (_, context) => {
						context.responseHeader.set("x-head", "in time");
						void late.promise.then(() => {
							context.responseHeader.set("x-head", "late");
							changed.resolve();
						});
						return {};
					},
				},
			});
			let header = new Headers();
			await client.unary(
				{},
				{
					onHeader: (headers) => {
						header = headers;
					},
				},
			);
			late.resolve();
			await changed.promise;
			return header.get("x-head");
		},
		outcome: "in time",
	},
];

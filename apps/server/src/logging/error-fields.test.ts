import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { errorFields } from "./error-fields.ts";
import { createLogger } from "./pino-logger.ts";

function throwing(): never {
	throw new Error("can't be read");
}

function withGetter(error: Error, name: string): Error {
	return Object.defineProperty(error, name, { get: throwing, enumerable: true });
}

function revoked(): object {
	const { proxy, revoke } = Proxy.revocable(new Error("gone"), {});
	revoke();
	return proxy;
}

/** Errors of which something can't be read, and what a line says of them. */
const unreadableErrors = [
	{
		what: "one with a field that throws",
		error: () => withGetter(new TypeError("no route"), "details"),
		fields: { err: { type: "TypeError", message: "no route", stack: expect.any(String) } },
	},
	{
		what: "one with a message that throws",
		error: () => withGetter(new TypeError(), "message"),
		fields: { err: { type: "TypeError", message: "an error that can't be read" } },
	},
	{
		what: "one with a cause that throws",
		error: () => new Error("outer", { cause: withGetter(new Error("inner"), "message") }),
		fields: { err: { message: "outer" } },
	},
	{
		what: "one with a field of fields that throws",
		error: () => Object.assign(new Error("outer"), { more: { at: withGetter(new Error(), "at") } }),
		fields: {},
	},
	{
		what: "a revoked proxy",
		error: revoked,
		fields: { err: { message: "an error that can't be read" } },
	},
	{
		what: "a proxy of an object that throws",
		error: () => new Proxy({}, { get: throwing, ownKeys: throwing }),
		fields: {},
	},
	{
		what: "what is no error and throws",
		error: () => Object.defineProperty({}, "toJSON", { get: throwing }),
		fields: {},
	},
];

describe("the fields of an error in a log line", () => {
	it("have no empty ones, and none twice", () => {
		const failure = new ConnectError("the stored version is another one", Code.Aborted);
		expect(errorFields(failure)).toEqual({
			type: "ConnectError",
			message: "[aborted] the stored version is another one",
			stack: expect.stringContaining("error-fields.test.ts"),
			code: "Aborted",
		});
	});

	it("keep what errors add, their causes, and what is no error", () => {
		const cause = new Error("no route to host");
		const failure = Object.assign(new Error("can't connect", { cause }), {
			code: "EHOSTUNREACH",
			address: "",
		});
		expect(errorFields(failure)).toEqual({
			type: "Error",
			message: "can't connect: no route to host",
			stack: expect.stringContaining("caused by: Error: no route to host"),
			code: "EHOSTUNREACH",
		});
		expect(errorFields("a text")).toBe("a text");
		expect(errorFields(undefined)).toBeUndefined();
	});

	it("are those of err in the lines of a logger", () => {
		const lines: string[] = [];
		const logger = createLogger({ destination: { write: (line) => lines.push(line) } });
		logger.warn({ err: new ConnectError("busy", Code.ResourceExhausted) }, "reconcile failed");
		expect(JSON.parse(lines[0] ?? "").err).toMatchObject({ code: "ResourceExhausted" });
		expect(lines[0]).not.toContain("metadata");
	});

	it.each(unreadableErrors)("are what can be read of $what", ({ error, fields }) => {
		const lines: string[] = [];
		const logger = createLogger({ destination: { write: (line) => lines.push(line) } });
		logger.warn({ err: error(), key: "a" }, "reconcile failed");
		expect(JSON.parse(lines[0] ?? "")).toMatchObject({
			key: "a",
			msg: "reconcile failed",
			...fields,
		});
	});
});

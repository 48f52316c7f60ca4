import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { errorFields } from "./error-fields.ts";
import { createLogger } from "./pino-logger.ts";

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
});

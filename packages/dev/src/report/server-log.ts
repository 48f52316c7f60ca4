import type { ErrorReport } from "../child/messages.ts";

/** A line of the server's log. */
export interface ServerLog {
	/** 30 is informational; higher ones are worse. */
	readonly level: number;
	readonly msg: string;
	/** All fields. */
	readonly fields: Readonly<Record<string, unknown>>;
	/** The error in the field `err`. */
	readonly error?: ErrorReport;
}

/** Whether a line of a server's output begins as those of its log do. */
export function isServerLog(line: string): boolean {
	return line.startsWith('{"level":');
}

/** Reads a line of the log; `undefined` if it is none. */
export function parseServerLog(line: string): ServerLog | undefined {
	let fields: unknown;
	try {
		fields = JSON.parse(line);
	} catch {
		return undefined;
	}
	if (!isRecord(fields) || typeof fields.level !== "number") {
		return undefined;
	}
	const error = errorOf(fields.err);
	const msg = typeof fields.msg === "string" ? fields.msg : "";
	return { level: fields.level, msg, fields, ...(error && { error }) };
}

function errorOf(err: unknown): ErrorReport | undefined {
	if (!isRecord(err) || typeof err.message !== "string" || typeof err.stack !== "string") {
		return undefined;
	}
	const name = typeof err.type === "string" ? err.type : "Error";
	// The stack of an error that a call failed with is that of the transport.
	return { name, message: err.message, stack: err.stack, isExpected: err.isWireError === true };
}

function isRecord(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null;
}

import type { Clock } from "@plinth/runtime";
import { DevError } from "../project/dev-options.ts";
import { type Address, TcpFront } from "./tcp-front.ts";

/** How long a connection waits for a server. */
const waitMs = 30_000;

/** The maximum number of connections that wait for a server. */
const waiting = 1_000;

/** A front whose port is open. */
export interface OpenFront {
	readonly front: TcpFront;
	readonly address: Address;
}

/** Opens the port of a project. @throws DevError that says why it can't be used. */
export async function openFront(address: Address, clock: Clock): Promise<OpenFront> {
	const front = new TcpFront({ clock, waitMs, waiting });
	try {
		return { front, address: await front.listen(address) };
	} catch (cause) {
		throw new DevError(explain(address, cause), { cause });
	}
}

function explain({ host, port }: Address, cause: unknown): string {
	const place = `${host}:${port}`;
	switch (cause instanceof Error && "code" in cause ? cause.code : undefined) {
		case "EADDRINUSE":
			return `${place} is in use by another program, perhaps another plinth dev: stop it, or choose another address with --listen ${host}:${port + 1}`;
		case "EACCES":
			return `this user may not listen on ${place}: choose a port from 1024 on with --listen`;
		default:
			return `can't listen on ${place}: ${cause instanceof Error ? cause.message : String(cause)}`;
	}
}

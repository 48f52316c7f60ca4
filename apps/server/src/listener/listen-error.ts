import { formatListenAddress, type ListenAddress } from "../configuration/listen-address.ts";

/** The server can't listen on an address. The message names the address, and what to do. */
export class ListenError extends Error {
	override readonly name = "ListenError";
}

/** The error of an attempt to listen on an address. */
export function listenError(address: ListenAddress, cause: NodeJS.ErrnoException): ListenError {
	return new ListenError(cannotListen(address, cause), { cause });
}

function cannotListen(address: ListenAddress, cause: NodeJS.ErrnoException): string {
	const where = formatListenAddress(address);
	switch (cause.code) {
		case "EADDRINUSE":
			return `can't listen on ${where}: another program listens there; stop it, or choose another address with --listen`;
		case "EACCES":
			return `can't listen on ${where}: not permitted; choose a port above 1023 with --listen`;
		case "EADDRNOTAVAIL":
		case "ENOTFOUND":
			return `can't listen on ${where}: this machine has no such address; choose another with --listen`;
		default:
			return `can't listen on ${where}: ${cause.message}`;
	}
}

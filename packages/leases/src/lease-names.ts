import { Code, ConnectError } from "@connectrpc/connect";

/** The longest name or prefix of a lease, and the longest id of a holder, in characters. */
const maxName = 200;
const maxHolder = 64;

/**
 * What the names of leases begin with at the storage: those that are granted over the API are never the same as those of
 * the servers themselves.
 */
export const nameSpace = "clients/";

/** The name of a lease for its client, by that at the storage. */
export function clientLeaseName(stored: string): string {
	return stored.startsWith(nameSpace) ? stored.slice(nameSpace.length) : stored;
}

/** @throws ConnectError InvalidArgument */
export function checkName(name: string, field: "name" | "prefix" = "name"): void {
	if (name === "") {
		throw new ConnectError(`${field} is required`, Code.InvalidArgument);
	}
	if (name.length > maxName) {
		const message = `${field} must be at most ${maxName} characters long, got ${name.length}`;
		throw new ConnectError(message, Code.InvalidArgument);
	}
	const other = /[^A-Za-z0-9._:/-]/u.exec(name)?.[0];
	if (other !== undefined) {
		const message = `${field} must consist of letters, digits and - . _ : / , got ${JSON.stringify(other)}`;
		throw new ConnectError(message, Code.InvalidArgument);
	}
}

/** @throws ConnectError InvalidArgument */
export function checkHolder(holder: string): void {
	if (holder === "") {
		const message = "holder is required: an id that is new for each attempt to hold a lease";
		throw new ConnectError(message, Code.InvalidArgument);
	}
	if (holder.length > maxHolder || /[^A-Za-z0-9]/.test(holder)) {
		const message = `holder must consist of at most ${maxHolder} letters and digits, such as a ULID`;
		throw new ConnectError(message, Code.InvalidArgument);
	}
}

import { type KnownTypes, loadTypes, type Place } from "@plinth/documents";
import type { Settings } from "../configuration/settings.ts";
import type { Io } from "../io.ts";
import { warn } from "../warn.ts";
import { callFailure } from "./call-failure.ts";
import { type Connection, connect } from "./connection.ts";

/** The settings, the connection and the types of a server, shared by the commands of one run. */
export class ServerSession implements Disposable {
	readonly io: Io;
	readonly settings: Settings;
	readonly place: Place;
	#connection: Connection | undefined;
	#types: Promise<KnownTypes> | undefined;

	constructor(io: Io, settings: Settings, place = settings.place) {
		this.io = io;
		this.settings = settings;
		this.place = place;
	}

	/** This session with another tenancy. Disposing this session closes it too. */
	at(place: Place): ServerSession {
		const session = new ServerSession(this.io, this.settings, place);
		session.#connection = this.connection;
		session.#types = this.#types;
		return session;
	}

	get connection(): Connection {
		if (this.#connection === undefined) {
			const { endpoint } = this.settings;
			this.#connection = connect(endpoint);
			if (endpoint.token !== undefined && isReadableByOthers(endpoint.server)) {
				warn(this.io, `the token is sent to ${endpoint.server} unencrypted: use https`);
			}
		}
		return this.#connection;
	}

	/** The types of the server, loaded once. */
	types(): Promise<KnownTypes> {
		this.#types ??= this.call(loadTypes(this.connection.types));
		return this.#types;
	}

	/** Awaits the response of a call. @throws Failure that explains the error. */
	async call<T>(response: Promise<T>): Promise<T> {
		try {
			return await response;
		} catch (error) {
			throw callFailure(error, this.settings.endpoint.server);
		}
	}

	[Symbol.dispose](): void {
		this.#connection?.[Symbol.dispose]();
	}
}

/** Whether calls leave this machine without encryption. */
function isReadableByOthers(server: string): boolean {
	const { protocol, hostname } = new URL(server);
	return protocol === "http:" && !/^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname);
}

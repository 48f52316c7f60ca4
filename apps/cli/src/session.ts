import { callFailure } from "./api/call-failure.ts";
import { type Connection, connect } from "./api/connection.ts";
import { type KnownTypes, loadTypes, type Place } from "./api/known-types.ts";
import { configFilePath, readConfiguration } from "./configuration/config-file.ts";
import { type GlobalFlags, resolveSettings, type Settings } from "./configuration/settings.ts";
import type { Io } from "./io.ts";

/** The settings, the connection and the types of the server, shared by the commands of one run. */
export class Session implements Disposable {
	readonly io: Io;
	readonly flags: GlobalFlags;
	#settings: Settings | undefined;
	#connection: Connection | undefined;
	#place: Place | undefined;
	#types: Promise<KnownTypes> | undefined;

	constructor(io: Io, flags: GlobalFlags) {
		this.io = io;
		this.flags = flags;
	}

	get configFile(): string {
		return this.flags.config ?? configFilePath(this.io.env);
	}

	get settings(): Settings {
		this.#settings ??= resolveSettings(
			this.flags,
			this.io.env,
			readConfiguration(this.configFile, (warning) => this.warn(warning)),
		);
		return this.#settings;
	}

	get place(): Place {
		return this.#place ?? this.settings.place;
	}

	/** This session with another tenancy. Disposing this session closes it too. */
	at(place: Place): Session {
		const session = new Session(this.io, this.flags);
		session.#settings = this.settings;
		session.#connection = this.connection;
		session.#types = this.#types;
		session.#place = place;
		return session;
	}

	get connection(): Connection {
		if (this.#connection === undefined) {
			const { endpoint } = this.settings;
			this.#connection = connect(endpoint);
			if (endpoint.token !== undefined && isReadableByOthers(endpoint.server)) {
				this.warn(`the token is sent to ${endpoint.server} unencrypted: use https`);
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

	warn(message: string): void {
		this.io.err(`plinth: warning: ${message}\n`);
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

import type { ServerSession } from "./api/server-session.ts";
import { configFilePath, readConfiguration } from "./configuration/config-file.ts";
import { type GlobalFlags, resolveSettings } from "./configuration/settings.ts";
import type { Io } from "./io.ts";
import { warn } from "./warn.ts";

/** What all commands of one run share: the environment, the flags of the program, and the session with the server. */
export class Session implements Disposable {
	readonly io: Io;
	readonly flags: GlobalFlags;
	#server: Promise<ServerSession> | undefined;
	#opened: ServerSession | undefined;

	constructor(io: Io, flags: GlobalFlags) {
		this.io = io;
		this.flags = flags;
	}

	get configFile(): string {
		return this.flags.config ?? configFilePath(this.io.env);
	}

	/** The flag or the variable that names the configuration file, if one does. Such a file has to exist. */
	get configNamedBy(): "--config" | "PLINTH_CONFIG" | undefined {
		if (this.flags.config !== undefined) {
			return "--config";
		}
		return this.io.env.PLINTH_CONFIG ? "PLINTH_CONFIG" : undefined;
	}

	/**
	 * The session with the server of the settings. Its code is loaded here, so that commands without a server start
	 * without it.
	 *
	 * @throws Failure for invalid settings.
	 */
	server(): Promise<ServerSession> {
		this.#server ??= this.#open();
		return this.#server;
	}

	async #open(): Promise<ServerSession> {
		const { io, flags } = this;
		const configuration = await readConfiguration(
			this.configFile,
			(text) => warn(io, text),
			this.configNamedBy,
		);
		const settings = resolveSettings(flags, io.env, configuration);
		const { ServerSession } = await import("./api/server-session.ts");
		this.#opened = new ServerSession(io, settings);
		return this.#opened;
	}

	[Symbol.dispose](): void {
		this.#opened?.[Symbol.dispose]();
	}
}

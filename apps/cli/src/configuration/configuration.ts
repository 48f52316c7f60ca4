/** A named server, with the credentials and defaults for it. */
export interface Context {
	readonly server: string;
	readonly token?: string;
	readonly partition?: string;
	readonly namespace?: string;
	readonly ca_file?: string;
	readonly certificate_file?: string;
	readonly key_file?: string;
}

/** The content of the configuration file. */
export interface Configuration {
	/** The default context. */
	readonly current?: string;
	readonly contexts: Readonly<Record<string, Context>>;
}

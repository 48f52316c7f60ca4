import type { Clock, Logger } from "@plinth/runtime";
import { followFiles } from "../../security/followed-files.ts";
import type { Listener } from "../listener.ts";
import { checkTlsMaterial, type TlsFiles, type TlsMaterial } from "./tls-files.ts";

/** The current contents of TLS files, which listeners receive when they change. */
export interface FollowedTls {
	readonly material: TlsMaterial;
	/** The same material, for listeners whose clients have a credential instead of a certificate. */
	readonly withoutClients: TlsMaterial;
	follow(listener: Listener): void;
	followWithoutClients(listener: Listener): void;
	/** Checks now whether the files have changed. */
	check(): Promise<void>;
	close(): void;
}

/** @throws Error if the files can't be read, or don't match each other. */
export async function followTls(
	files: TlsFiles,
	context: { readonly clock: Clock; readonly logger: Logger },
): Promise<FollowedTls> {
	const { certFile, keyFile, clientCaFile } = files;
	const paths: Readonly<Record<string, string>> = {
		cert: certFile,
		key: keyFile,
		...(clientCaFile !== undefined && { ca: clientCaFile }),
	};
	let material: TlsMaterial | undefined;
	const listeners: ((material: TlsMaterial) => void)[] = [];
	const followed = await followFiles({
		...context,
		files: paths,
		apply: ({ cert = "", key = "", ca }) => {
			const read = { cert, key, ...(ca !== undefined && { ca }) };
			checkTlsMaterial(files, read);
			material = read;
			for (const follow of listeners) {
				follow(read);
			}
		},
	});
	const current = () => {
		if (material === undefined) {
			throw new Error("the files have not been read yet");
		}
		return material;
	};
	const follow = (setTls: (material: TlsMaterial) => void) => {
		listeners.push(setTls);
		setTls(current());
	};
	return {
		get material() {
			return current();
		},
		get withoutClients() {
			return withoutClients(current());
		},
		follow: (opened) => follow((next) => opened.setTls(next)),
		followWithoutClients: (opened) => follow((next) => opened.setTls(withoutClients(next))),
		check: () => followed.check(),
		close: () => followed.close(),
	};
}

function withoutClients({ cert, key }: TlsMaterial): TlsMaterial {
	return { cert, key };
}

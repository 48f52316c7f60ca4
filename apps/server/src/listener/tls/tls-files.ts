import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { FileError } from "../../configuration/located-yaml.ts";

/** Files in PEM that make a listener speak TLS. */
export interface TlsFiles {
	/** The certificate and its chain. */
	readonly certFile: string;
	readonly keyFile: string;
	/** Mutual TLS: only clients with a certificate of these authorities are accepted. */
	readonly clientCaFile?: string;
}

/** The contents of TLS files. */
export interface TlsMaterial {
	readonly cert: string;
	readonly key: string;
	readonly ca?: string;
}

/**
 * Checks that the contents of TLS files match each other, before a listener uses them.
 *
 * @throws FileError that names the file which is not valid.
 */
export function checkTlsMaterial(files: TlsFiles, material: TlsMaterial): void {
	try {
		new X509Certificate(material.cert);
	} catch (cause) {
		throw new FileError(`${files.certFile} contains no certificate in PEM`, { cause });
	}
	if (files.clientCaFile !== undefined) {
		try {
			new X509Certificate(material.ca ?? "");
		} catch (cause) {
			throw new FileError(`${files.clientCaFile} contains no certificate in PEM`, { cause });
		}
	}
	try {
		createSecureContext(material);
	} catch (cause) {
		throw new FileError(
			`${files.keyFile} does not contain the key, in PEM, of the certificate in ${files.certFile}`,
			{
				cause,
			},
		);
	}
}

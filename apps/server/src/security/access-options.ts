/** The rights of callers. */
export interface AccessOptions {
	/** The access file: hashed tokens and policies; see `parseAccessFile`. */
	readonly file: string;
	/** If absent, JWTs are not accepted. */
	readonly jwt?: JwtOptions;
}

/** The JWTs that are accepted. */
export interface JwtOptions {
	/** The keys that they are signed with, as a JSON Web Key Set. */
	readonly keys: { readonly file: string } | { readonly url: URL };
	/** The value that their `iss` must have. */
	readonly issuer: string;
	/** The value that their `aud` must contain. */
	readonly audience: string;
}

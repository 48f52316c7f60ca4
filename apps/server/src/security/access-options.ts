/** Who may do what. */
export interface AccessOptions {
	/** The access file: hashed tokens and policies; see `readAccessFile`. */
	readonly file: string;
	/** Absent: JWTs are not taken. */
	readonly jwt?: JwtOptions;
}

/** Which JWTs are taken. */
export interface JwtOptions {
	/** The keys that they are signed with, as a JSON Web Key Set. */
	readonly keys: { readonly file: string } | { readonly url: URL };
	/** What their `iss` must be. */
	readonly issuer: string;
	/** What must be in their `aud`. */
	readonly audience: string;
}

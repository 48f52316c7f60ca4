import { type FormEvent, useState } from "react";

/** What can be sent in a header. */
const tokenForm = /^[\x21-\x7e]+$/;

/** Asks for a token. */
export function SignIn({
	reason,
	onToken,
}: {
	readonly reason: string;
	readonly onToken: (token: string) => void;
}) {
	const [token, setToken] = useState("");
	const [isMalformed, setIsMalformed] = useState(false);
	const problem = isMalformed ? "A token has no spaces, and no letters beyond ASCII." : reason;
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (tokenForm.test(token.trim())) {
			onToken(token.trim());
		} else {
			setIsMalformed(true);
		}
	};
	return (
		<main className="center">
			<form className="sign-in card" onSubmit={submit}>
				<h1>Sign in to Plinth</h1>
				<p className="muted">
					This server needs a token. It is kept in this tab until you sign out or close it.
				</p>
				{problem !== "" && (
					<p className="notice bad" role="alert">
						{problem}
					</p>
				)}
				<label htmlFor="token">Token</label>
				<input
					id="token"
					type="password"
					autoComplete="off"
					spellCheck={false}
					// The page has nothing else.
					ref={(input) => input?.focus()}
					value={token}
					onChange={(event) => setToken(event.target.value)}
				/>
				<button type="submit" className="primary" disabled={token.trim() === ""}>
					Sign in
				</button>
			</form>
		</main>
	);
}

import { Code, ConnectError } from "@connectrpc/connect";

/** Says what could not be read or done, and why. */
export function ErrorNotice({
	error,
	what,
	verb = "read",
	onRetry,
}: {
	readonly error: unknown;
	readonly what: string;
	/** What was tried. */
	readonly verb?: string;
	readonly onRetry?: () => void;
}) {
	const { code, rawMessage } = ConnectError.from(error);
	const isRefused = code === Code.PermissionDenied;
	return (
		<div className={isRefused ? "notice" : "notice bad"} role={isRefused ? "note" : "alert"}>
			<span>
				{isRefused
					? `You may not ${verb} ${what}${verb === "read" ? "" : `: ${rawMessage}`}.`
					: `Can't ${verb} ${what}: ${rawMessage}`}
			</span>
			{onRetry !== undefined && (
				<button type="button" onClick={onRetry}>
					Try again
				</button>
			)}
		</div>
	);
}

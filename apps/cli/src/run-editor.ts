import { spawn } from "node:child_process";
import { once } from "node:events";

/** Opens a file in an editor, which is a shell command, and resolves to its exit code. */
export async function runEditor(command: string, file: string): Promise<number> {
	const editor = spawn("sh", ["-c", `${command} "$1"`, "sh", file], { stdio: "inherit" });
	const [code] = await once(editor, "exit");
	return typeof code === "number" ? code : 1;
}

import type { AddCommand } from "@plinth/cli";
import { addDev } from "@plinth/dev/command";
import { addGenerate } from "@plinth/scaffold/command";

/** The commands of `plinth` that work on a project, beside those that call a server. */
export const projectCommands: readonly AddCommand[] = [addDev, addGenerate];

import { fileCandidate, type Shell } from "./shells.ts";

/** The script for each shell. It runs the hidden command `__complete` to get the candidates. */
export const scripts: Readonly<Record<Shell, string>> = {
	bash: `# plinth completion for bash: source <(plinth completion bash)
_plinth() {
  local candidates current="\${COMP_WORDS[COMP_CWORD]}"
  candidates=$("\${COMP_WORDS[0]}" __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return
  [[ $current == "=" ]] && current=""
  if [[ $candidates == "${fileCandidate}" ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$candidates" -- "$current")
  [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *= ]] && compopt -o nospace
  return 0
}
complete -F _plinth plinth
`,
	zsh: `#compdef plinth
# plinth completion for zsh: source <(plinth completion zsh)
_plinth() {
  local -a candidates
  candidates=("\${(@f)$(\${words[1]} __complete -- "\${(@)words[2,$CURRENT]}" 2>/dev/null)}")
  if [[ $candidates[1] == "${fileCandidate}" ]]; then
    _files
  else
    compadd -a candidates
  fi
}
compdef _plinth plinth
`,
	fish: `# plinth completion for fish: plinth completion fish | source
function __plinth_candidates
  set -l candidates (plinth __complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
  if test "$candidates" = "${fileCandidate}"
    __fish_complete_path (commandline -ct)
  else
    printf '%s\\n' $candidates
  end
end
complete -c plinth -f -a '(__plinth_candidates)'
`,
};

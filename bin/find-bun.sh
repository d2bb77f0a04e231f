# Sourced by bin/signalbox and bin/bun. find_bun DIR sets $bun to the Bun executable that npm installed.
# Install scripts may have been switched off, so the platform package is looked up itself: @oven/bun-<os>-<arch>
# holds the executable as unpacked; the install script of the package "bun" moves it to bun/bin/bun.exe.

# What Bun reads at process start only; src/runtime/runtime-options.ts says why.
export BUN_CONFIG_MAX_HTTP_REQUESTS="${BUN_CONFIG_MAX_HTTP_REQUESTS:-65336}"
export BUN_JSC_thresholdForFTLOptimizeAfterWarmUp="${BUN_JSC_thresholdForFTLOptimizeAfterWarmUp:-10000}"

find_bun() {
  case "$(uname -s)" in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    FreeBSD) os=freebsd ;;
    *) echo "signalbox: $(uname -s) is not supported; use Linux, macOS or FreeBSD (on Windows: WSL)" >&2; exit 1 ;;
  esac
  case "$(uname -m)" in
    x86_64 | amd64) arch=x64 ;;
    aarch64 | arm64) arch=aarch64 ;;
    *) echo "signalbox: no Bun for the processor $(uname -m); x86_64 and arm64 are supported" >&2; exit 1 ;;
  esac
  libc=
  if [ "$os" = linux ] && ls /lib/ld-musl-* >/dev/null 2>&1; then libc=-musl; fi
  dir=$1
  while :; do
    # Where musl is installed beside glibc, npm has brought the package for glibc.
    for bun in "$dir/node_modules/@oven/bun-$os-$arch$libc/bin/bun" "$dir/node_modules/@oven/bun-$os-$arch/bin/bun" \
      "$dir/node_modules/bun/bin/bun.exe"; do
      # Without its install script bun.exe is a short text that explains itself, never larger than a few kilobytes.
      if [ -f "$bun" ] && [ -n "$(find "$bun" -size +2000k 2>/dev/null)" ]; then
        [ -x "$bun" ] || chmod +x "$bun" 2>/dev/null
        return 0
      fi
    done
    [ "$dir" = / ] && break
    dir=$(dirname "$dir")
  done
  echo "signalbox: Bun is missing from node_modules; run 'npm install' in the project folder (without --omit=optional)" >&2
  exit 1
}

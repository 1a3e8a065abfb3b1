"""What kernels read and write, from their code: nobody declares it."""
